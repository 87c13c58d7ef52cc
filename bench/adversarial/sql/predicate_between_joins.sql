-- Returns the bookings in the circles of members of one level whom a model suspects.
SELECT accounts.account, count(*) AS bookings, sum(amount) AS amount
FROM accounts
JOIN bookings ON accounts.circle = bookings.circle
JOIN members ON accounts.account = members.account
WHERE is_suspect(score) AND level = 3
GROUP BY accounts.account
