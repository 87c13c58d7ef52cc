-- The join that shrinks, the predicate, the join that expands.
SELECT /*+ BROADCAST(kept) */ kept.account, count(*) AS bookings, sum(amount) AS amount
FROM (
    SELECT /*+ BROADCAST(members) */ accounts.account, circle
    FROM accounts
    JOIN members ON accounts.account = members.account
    WHERE level = 3 AND is_suspect(score)
) AS kept
JOIN bookings ON kept.circle = bookings.circle
GROUP BY kept.account
