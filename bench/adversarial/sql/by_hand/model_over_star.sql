-- The selective shops, then the model; what is left is broadcast to the large dimensions.
SELECT /*+ BROADCAST(told) */ told.customer_id, amount, customer_0, customer_1, product_0, shop_1
FROM (
    SELECT /*+ BROADCAST(kept) */ kept.customer_id, amount, customer_0, customer_1, product_id, shop_1
    FROM (
        SELECT /*+ BROADCAST(shops) */ customer_id, product_id, amount, shop_1
        FROM sales
        JOIN shops ON sales.shop_id = shops.shop_id
        WHERE shop_0 % 200 = 0 AND is_plausible(amount)
    ) AS kept
    JOIN customers ON kept.customer_id = customers.customer_id
) AS told
JOIN products ON told.product_id = products.product_id
