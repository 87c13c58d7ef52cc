-- The predicate first, as Spark does it; what is left is broadcast.
SELECT /*+ BROADCAST(shipped) */ weight, count(*) AS lines, sum(length) AS length
FROM messages
JOIN (
    SELECT /*+ BROADCAST(odd) */ odd.order_id, weight
    FROM shipments
    JOIN (SELECT order_id FROM orders WHERE is_odd(code)) AS odd ON odd.order_id = shipments.order_id
) AS shipped ON messages.order_id = shipped.order_id
GROUP BY weight
