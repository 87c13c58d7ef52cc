-- The owners in the town first; the predicate sees their pairs only.
SELECT /*+ BROADCAST(near) */ wish, near.thing, price, budget
FROM wishes
JOIN (
    SELECT /*+ BROADCAST(owners) */ thing, price
    FROM offers
    JOIN owners ON offers.owner = owners.owner
    WHERE town = 11
) AS near ON near.thing = wishes.thing
WHERE suits(price, budget)
