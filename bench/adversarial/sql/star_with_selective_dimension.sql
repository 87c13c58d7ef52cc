-- Returns the sales of some shops with what is known about them.
SELECT sales.customer_id, amount, customer_0, customer_1, customer_2, customer_3,
       product_0, product_1, product_2, product_3, shop_1, shop_2, shop_3
FROM sales
JOIN customers ON sales.customer_id = customers.customer_id
JOIN products ON sales.product_id = products.product_id
JOIN shops ON sales.shop_id = shops.shop_id
WHERE is_chosen(shop_0)
