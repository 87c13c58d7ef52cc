-- Returns the visits beside the clicks on pages about one topic.
SELECT length, count(*) AS pairs, sum(seconds) AS seconds
FROM clicks
JOIN visits ON clicks.user_id = visits.user_id
JOIN pages ON clicks.page_id = pages.page_id
WHERE topic = 7
GROUP BY length
