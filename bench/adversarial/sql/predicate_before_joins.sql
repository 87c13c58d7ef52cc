-- Returns what was shipped and said about suspicious orders.
SELECT weight, count(*) AS lines, sum(length) AS length
FROM messages
JOIN orders ON messages.order_id = orders.order_id
JOIN shipments ON orders.order_id = shipments.order_id
WHERE is_odd(code)
GROUP BY weight
