-- Returns the plausible sales of some shops with what is known about them.
SELECT sales.customer_id, amount, customer_0, customer_1, product_0, shop_1
FROM sales
JOIN customers ON sales.customer_id = customers.customer_id
JOIN products ON sales.product_id = products.product_id
JOIN shops ON sales.shop_id = shops.shop_id
WHERE is_plausible(amount) AND shop_0 % 200 = 0
