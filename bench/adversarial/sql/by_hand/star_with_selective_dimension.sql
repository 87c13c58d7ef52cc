-- The selective shops first; what is left of the sales is broadcast to the large dimensions.
SELECT /*+ BROADCAST(told) */ told.customer_id, amount,
       customer_0, customer_1, customer_2, customer_3,
       product_0, product_1, product_2, product_3, shop_1, shop_2, shop_3
FROM (
    SELECT /*+ BROADCAST(kept) */ kept.*, customer_0, customer_1, customer_2, customer_3
    FROM (
        SELECT /*+ BROADCAST(chosen) */ customer_id, product_id, amount, shop_1, shop_2, shop_3
        FROM sales
        JOIN (SELECT * FROM shops WHERE is_chosen(shop_0)) AS chosen
          ON sales.shop_id = chosen.shop_id
    ) AS kept
    JOIN customers ON kept.customer_id = customers.customer_id
) AS told
JOIN products ON told.product_id = products.product_id
