-- The selective pages first; what is left of the clicks is broadcast to the visits.
SELECT /*+ BROADCAST(kept) */ length, count(*) AS pairs, sum(seconds) AS seconds
FROM (
    SELECT /*+ BROADCAST(pages) */ user_id, seconds
    FROM clicks
    JOIN pages ON clicks.page_id = pages.page_id
    WHERE topic = 7
) AS kept
JOIN visits ON kept.user_id = visits.user_id
GROUP BY length
