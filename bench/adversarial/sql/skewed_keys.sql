-- Returns the replies to posts of all but the most eager authors.
SELECT score, count(*) AS pairs, sum(length) AS length
FROM posts
JOIN replies ON posts.author = replies.author
JOIN authors ON posts.author = authors.author
WHERE is_human(rank)
GROUP BY score
