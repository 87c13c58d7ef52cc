-- The selective pages first, then the model, then what expands.
SELECT /*+ BROADCAST(kept) */ length, count(*) AS pairs, sum(seconds) AS seconds
FROM (
    SELECT /*+ BROADCAST(pages) */ user_id, seconds
    FROM clicks
    JOIN pages ON clicks.page_id = pages.page_id
    WHERE topic = 7 AND is_by_people(seconds)
) AS kept
JOIN visits ON kept.user_id = visits.user_id
GROUP BY length
