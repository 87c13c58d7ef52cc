"""Statements over 10 to 500 rows."""

from __future__ import annotations

from typing import Final

from bench.short.queries import Short

TINY: Final = "tiny"
"""The group of these queries."""

FEW_ROWS: Final = (
    Short(
        "cheap_sales",
        """
        SELECT id, sku FROM products WHERE has_tag(tags, 'sale') AND parse_amount(price) < 20
        """,
        TINY,
    ),
    Short(
        "addresses_by_hand",
        """
        SELECT email, is_email(email) AS valid, domain_of(lower_text(email)) AS domain
        FROM VALUES ('ada@example.org'), ('Bob@Example.COM'), ('none'), (' x@y.example'),
                    ('a@b'), ('carol.smith@mail.example.net'), ('@example.org'), ('dan@'),
                    ('eve+tag@example.org'), (CAST(NULL AS STRING)) AS t(email)
        """,
        TINY,
    ),
    Short(
        "some_customers",
        """
        SELECT id, soundex_code(surname_of(name)) AS code, mask_email(lower_text(email)) AS contact
        FROM (SELECT * FROM customers ORDER BY id LIMIT 50)
        """,
        TINY,
    ),
    Short(
        "categories",
        """
        SELECT category, sku_family(sku) AS family,
               COUNT(*) FILTER (WHERE has_tag(tags, 'new')) AS fresh,
               MAX(parse_amount(price)) AS dearest
        FROM products
        GROUP BY category, sku_family(sku)
        """,
        TINY,
    ),
    Short(
        "similar_projects",
        """
        SELECT a.id, b.id AS other_id, title_similarity(a.title, b.title) AS likeness
        FROM (SELECT id, title FROM projects WHERE id <= 40) a
        JOIN (SELECT id, title FROM projects WHERE id <= 40) b
          ON a.id < b.id AND title_similarity(a.title, b.title) > 0.4
        """,
        TINY,
    ),
    Short(
        "nearest_names",
        """
        SELECT id, name, edit_distance(lower_text(name), 'red ceramic lamp') AS distance
        FROM products
        WHERE name IS NOT NULL
        ORDER BY edit_distance(lower_text(name), 'red ceramic lamp'), id
        LIMIT 10
        """,
        TINY,
    ),
    Short(
        "cards",
        """
        SELECT id, CASE WHEN luhn_ok(card) THEN mask_card(card) ELSE 'invalid' END AS shown
        FROM (SELECT id, card FROM customers ORDER BY id LIMIT 200)
        """,
        TINY,
    ),
    Short(
        "complained_products",
        """
        SELECT p.id, p.sku
        FROM products p
        WHERE parse_amount(p.price) > 30
          AND EXISTS (
              SELECT 1 FROM (SELECT product_id, note FROM orders ORDER BY id LIMIT 300) o
              WHERE o.product_id = p.id AND mentions_delay(o.note)
          )
        """,
        TINY,
    ),
    Short(
        "sounds",
        """
        SELECT DISTINCT soundex_code(surname_of(name)) AS code FROM customers WHERE id <= 500
        """,
        TINY,
    ),
    Short(
        "numbers",
        """
        SELECT id, add_one(add_one(id)) AS later, hash_bucket(CAST(id AS STRING), 7) AS bucket_no
        FROM range(10)
        """,
        TINY,
    ),
    Short(
        "quarters_of_products",
        """
        SELECT id, quarter,
               ROW_NUMBER() OVER (PARTITION BY quarter ORDER BY price DESC, id) AS place
        FROM (
            SELECT id, quarter_of(released) AS quarter, parse_amount(price) AS price FROM products
            WHERE id <= 300
        )
        """,
        TINY,
    ),
    Short(
        "authors_of_a_few",
        """
        SELECT author, COUNT(*) AS papers
        FROM (
            SELECT explode(author_list(authors)) AS author
            FROM (SELECT authors FROM publications ORDER BY id LIMIT 100)
        )
        WHERE author LIKE 's%'
        GROUP BY author
        """,
        TINY,
    ),
)
