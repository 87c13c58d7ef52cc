"""The queries: what people ask of the tables of a shop in between, with functions and without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WITH: Final = "with functions"
WITHOUT: Final = "without functions"
"""The groups of queries."""


@dataclass(frozen=True, slots=True)
class Short:
    """A query: its name, its text, and the group that it belongs to."""

    name: str
    text: str
    group: str = WITH


QUERIES: Final = (
    Short(
        "orders of a month",
        """
        SELECT order_id, shop
        FROM orders
        WHERE parse_date(ordered) BETWEEN DATE '2024-03-01' AND DATE '2024-03-31'
        """,
    ),
    Short(
        "sales by shop and month",
        """
        SELECT shop, date_trunc('MONTH', parse_date(ordered)) AS month,
               count(*) AS orders, sum(parse_amount(amount)) AS sales
        FROM orders
        WHERE parse_date(ordered) >= DATE '2024-01-01' AND status <> 'open'
        GROUP BY shop, date_trunc('MONTH', parse_date(ordered))
        """,
    ),
    Short(
        "a tidy list of customers",
        """
        SELECT customer_id, title_case(name) AS name, country_code(country) AS country,
               clean_phone(phone, country_code(country)) AS phone, email_domain(email) AS host
        FROM customers
        """,
    ),
    Short(
        "customers to call",
        """
        SELECT customer_id, name
        FROM customers
        WHERE clean_phone(phone, 'DE') IS NOT NULL
          AND country_code(country) = 'DE'
          AND is_email(email)
        """,
    ),
    Short(
        "articles sold most",
        """
        SELECT sku, count(*) AS orders
        FROM orders LATERAL VIEW explode(skus_of(items)) AS sku
        WHERE status = 'sent'
        GROUP BY sku
        ORDER BY orders DESC, sku
        LIMIT 20
        """,
    ),
    Short(
        "customers with many pieces",
        """
        SELECT customer_id, sum(pieces_of(items)) AS pieces
        FROM orders
        GROUP BY customer_id
        HAVING sum(pieces_of(items)) > 40
        """,
    ),
    Short(
        "sales by currency",
        """
        SELECT shop,
               sum(CASE WHEN currency_of(amount) = 'EUR' THEN parse_amount(amount) END) AS euros,
               sum(CASE WHEN currency_of(amount) = 'USD' THEN parse_amount(amount) END) AS dollars,
               sum(CASE WHEN currency_of(amount) = 'GBP' THEN 1 ELSE 0 END) AS in_pounds
        FROM orders
        GROUP BY shop
        """,
    ),
    Short(
        "the last order of each customer",
        """
        SELECT customer_id, order_id, sales
        FROM (
            SELECT customer_id, order_id, parse_amount(amount) AS sales, row_number() OVER (
                PARTITION BY customer_id ORDER BY parse_date(ordered) DESC, order_id
            ) AS place
            FROM orders
        )
        WHERE place = 1
        """,
    ),
    Short(
        "a running total",
        """
        SELECT order_id, sum(parse_amount(amount)) OVER (
            PARTITION BY shop ORDER BY parse_date(ordered), order_id
        ) AS so_far
        FROM orders
        WHERE shop IN ('shop 3', 'shop 4')
        """,
    ),
    Short(
        "addresses of pages",
        "SELECT DISTINCT slug(without_accents(title_case(title))) AS page FROM products",
    ),
    Short(
        "articles on sale",
        """
        SELECT sku, title
        FROM products
        WHERE array_contains(tags_of(tags), 'sale') AND parse_amount(price) < 50
        """,
    ),
    Short(
        "articles above the average",
        """
        SELECT sku, parse_amount(price) AS price
        FROM products
        WHERE parse_amount(price) > (SELECT avg(parse_amount(price)) FROM products)
        """,
    ),
    Short(
        "titles most like one",
        """
        SELECT sku, title, similarity(title, 'Wireless Headset Pro Black') AS alike
        FROM products
        ORDER BY similarity(title, 'Wireless Headset Pro Black') DESC, sku
        LIMIT 10
        """,
    ),
    Short(
        "campaigns",
        """
        SELECT parameter_of(url, 'utm_campaign') AS campaign, count(DISTINCT customer_id) AS people
        FROM visits
        WHERE parameter_of(url, 'utm_campaign') IS NOT NULL
        GROUP BY parameter_of(url, 'utm_campaign')
        HAVING count(*) > 10
        ORDER BY people DESC, campaign
        """,
    ),
    Short(
        "browsers of people",
        """
        SELECT browser_of(agent) AS browser, device_of(agent) AS device, count(*) AS visits
        FROM visits
        WHERE NOT is_bot(agent)
        GROUP BY browser_of(agent), device_of(agent)
        """,
    ),
    Short(
        "visits from elsewhere",
        """
        SELECT domain_of(referrer) AS domain, section_of(url) AS section, count(*) AS visits
        FROM visits
        WHERE domain_of(referrer) <> domain_of(url) AND milliseconds < 1000
        GROUP BY domain_of(referrer), section_of(url)
        ORDER BY domain_of(referrer), section
        """,
    ),
    Short(
        "networks outside",
        "SELECT DISTINCT subnet_of(ip) AS subnet FROM visits WHERE NOT is_private(ip)",
    ),
    Short(
        "slow pages that people saw",
        """
        SELECT visit_id, url, browser_of(agent) AS browser
        FROM visits
        WHERE milliseconds > 2500 AND NOT is_bot(agent) AND section_of(url) = 'cart'
        ORDER BY milliseconds DESC, visit_id
        LIMIT 100
        """,
    ),
    Short(
        "companies in both lists",
        """
        SELECT c.company_id, s.company_id AS supplier_id
        FROM companies c
        JOIN suppliers s ON c.postcode = s.postcode
        WHERE similarity(company_key(c.name), company_key(s.name)) > 0.85
        """,
    ),
    Short(
        "companies of one name",
        """
        SELECT c.company_id, s.company_id AS supplier_id, country_code(c.country) AS country
        FROM companies c
        JOIN suppliers s ON company_key(c.name) = company_key(s.name) AND c.postcode = s.postcode
        """,
    ),
    Short(
        "suppliers that are new",
        """
        SELECT s.company_id, s.name
        FROM suppliers s
        LEFT JOIN companies c ON company_key(c.name) = company_key(s.name)
        WHERE c.company_id IS NULL
        """,
    ),
    Short(
        "numbers in both lists",
        """
        SELECT clean_phone(phone, country_code(country)) AS phone FROM companies
        UNION
        SELECT clean_phone(phone, country_code(country)) AS phone FROM suppliers
        """,
    ),
    Short(
        "hosts of everybody",
        """
        SELECT host, count(*) AS addresses
        FROM (
            SELECT email_domain(email) AS host FROM customers
            UNION ALL
            SELECT email_domain(email) AS host FROM suppliers
        )
        GROUP BY host
        """,
    ),
    Short(
        "customers at hosts of suppliers",
        """
        SELECT count(*) AS customers
        FROM customers
        WHERE email_domain(email) IN (SELECT email_domain(email) FROM suppliers)
        """,
    ),
    Short(
        "payments of orders",
        """
        SELECT payment_id, order_id, parse_amount(p.amount) - parse_amount(o.amount) AS difference
        FROM payments p
        JOIN orders o ON order_number(p.reference) = o.order_id
        WHERE parse_amount(p.amount) > parse_amount(o.amount) + 100
        """,
    ),
    Short(
        "orders without a payment",
        """
        SELECT shop, count(*) AS orders
        FROM orders o
        WHERE status = 'sent' AND parse_date(ordered) < DATE '2024-06-01' AND NOT EXISTS (
            SELECT 1 FROM payments p WHERE order_number(p.reference) = o.order_id
        )
        GROUP BY shop
        """,
    ),
    Short(
        "accounts that are none",
        "SELECT payment_id, iban FROM payments WHERE NOT is_iban(iban)",
    ),
    Short(
        "customers who complain",
        """
        SELECT customer_id, title_case(name) AS name
        FROM customers c
        WHERE EXISTS (
            SELECT 1
            FROM tickets t
            WHERE t.customer_id = c.customer_id
              AND mood_of(t.body) < -3
              AND topic_of(t.subject) = 'delivery'
        )
        """,
    ),
    Short(
        "sales to those who complain",
        """
        SELECT country_code(c.country) AS country, count(*) AS orders,
               sum(parse_amount(o.amount)) AS sales
        FROM customers c
        JOIN orders o ON o.customer_id = c.customer_id
        JOIN tickets t ON t.customer_id = c.customer_id
        WHERE topic_of(t.subject) = 'payment' AND mood_of(t.body) < 0 AND o.status = 'paid'
        GROUP BY country_code(c.country)
        """,
    ),
    Short(
        "tickets that took long",
        """
        SELECT topic_of(subject) AS topic, count(*) AS tickets,
               avg(working_days(parse_date(opened), closed)) AS days
        FROM tickets
        WHERE working_days(parse_date(opened), closed) > 10
        GROUP BY topic_of(subject)
        """,
    ),
    Short(
        "the latest tickets",
        """
        SELECT ticket_id, topic_of(subject) AS topic, masked(body) AS body
        FROM tickets
        ORDER BY ticket_id DESC
        LIMIT 50
        """,
    ),
    Short(
        "subjects in other words",
        """
        SELECT normalized(subject) AS words, count(*) AS tickets
        FROM tickets
        WHERE topic_of(subject) <> 'other'
        GROUP BY normalized(subject)
        """,
    ),
    Short(
        "lines at a discount",
        """
        SELECT sku, sum(discounted(price, pieces)) AS sales
        FROM order_lines
        WHERE pieces > 5
        GROUP BY sku
        HAVING sum(discounted(price, pieces)) > 3000
        """,
    ),
    Short(
        "ages of customers",
        """
        SELECT CASE WHEN years_at(birthday, DATE '2025-01-01') < 30 THEN 'young'
                    WHEN years_at(birthday, DATE '2025-01-01') < 60 THEN 'middle'
                    ELSE 'old' END AS age, count(*) AS customers
        FROM customers
        GROUP BY 1
        """,
    ),
    Short(
        "months and the months before",
        """
        WITH sales AS (
            SELECT month(parse_date(ordered)) AS month, sum(parse_amount(amount)) AS sales
            FROM orders
            GROUP BY month(parse_date(ordered))
        )
        SELECT later.month, later.sales - earlier.sales AS more
        FROM sales later
        JOIN sales earlier ON later.month = earlier.month + 1
        """,
    ),
    Short(
        "events by day",
        """
        SELECT day, kind, count(*) AS events, sum(value) AS value
        FROM events
        WHERE kind <> 'view'
        GROUP BY day, kind
        """,
        WITHOUT,
    ),
    Short(
        "customers who bought most",
        """
        SELECT c.customer_id, c.name, sum(e.value) AS value
        FROM events e
        JOIN customers c ON c.customer_id = e.customer_id
        WHERE e.kind = 'buy'
        GROUP BY c.customer_id, c.name
        ORDER BY value DESC, c.customer_id
        LIMIT 20
        """,
        WITHOUT,
    ),
    Short(
        "one order",
        "SELECT * FROM orders WHERE order_id = 117",
        WITHOUT,
    ),
    Short(
        "the last event of each customer",
        """
        SELECT customer_id, event_id, kind
        FROM (
            SELECT customer_id, event_id, kind, row_number() OVER (
                PARTITION BY customer_id ORDER BY day DESC, event_id
            ) AS place
            FROM events
        )
        WHERE place = 1
        """,
        WITHOUT,
    ),
    Short(
        "sales of lines",
        """
        SELECT o.status, p.sku, sum(l.price * l.pieces) AS sales
        FROM order_lines l
        JOIN orders o ON o.order_id = l.order_id
        JOIN products p ON p.sku = l.sku
        WHERE o.shop = 'shop 2'
        GROUP BY o.status, p.sku
        """,
        WITHOUT,
    ),
    Short(
        "customers without events",
        """
        SELECT customer_id
        FROM customers c
        WHERE NOT EXISTS (
            SELECT 1 FROM events e WHERE e.customer_id = c.customer_id AND e.kind = 'return'
        )
        """,
        WITHOUT,
    ),
)
