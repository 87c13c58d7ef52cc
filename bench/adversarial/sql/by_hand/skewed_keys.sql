-- Only authors of both are asked about, before anything expands.
SELECT score, count(*) AS pairs, sum(length) AS length
FROM (
    SELECT /*+ BROADCAST(people) */ posts.author, length
    FROM posts
    JOIN (
        SELECT author
        FROM authors
        LEFT SEMI JOIN (SELECT DISTINCT author FROM posts) AS a ON authors.author = a.author
        LEFT SEMI JOIN (SELECT DISTINCT author FROM replies) AS b ON authors.author = b.author
        WHERE is_human(rank)
    ) AS people ON posts.author = people.author
) AS written
JOIN replies ON written.author = replies.author
GROUP BY score
