"""What people ask day by day: filters, joins, windows, subqueries, unions."""

from __future__ import annotations

from typing import Final

from bench.short.queries import Short

PEOPLE: Final = "people"
"""The group of these queries."""

EVERYDAY: Final = (
    Short(
        "valid_customers",
        """
        SELECT id, name
        FROM customers
        WHERE is_email(email) AND luhn_ok(card) AND soundex_code(surname_of(name)) LIKE 'S%'
        """,
        PEOPLE,
    ),
    Short(
        "hard_to_read",
        """
        SELECT id, title
        FROM publications
        WHERE id <= 20000 AND readability(abstract) < -10 AND word_count(title) > 6
          AND has_tag(topics, 'climate')
        """,
        PEOPLE,
    ),
    Short(
        "slugs",
        """
        SELECT id, slug(lower_text(title)) AS path, fingerprint(slug(lower_text(title))) AS etag
        FROM publications
        WHERE id % 4 = 0
        """,
        PEOPLE,
    ),
    Short(
        "large_delayed_orders",
        """
        SELECT o.id, c.id AS customer, mask_email(c.email) AS contact
        FROM orders o
        JOIN customers c ON o.customer_id = c.id
        WHERE is_email(c.email) AND mentions_delay(o.note) AND to_euro(o.amount, o.currency) > 300
        """,
        PEOPLE,
    ),
    Short(
        "views_of_products",
        """
        SELECT p.id, p.name, COUNT(*) AS views
        FROM logs l
        JOIN products p ON product_of_url(l.url) = p.id
        WHERE l.status = 200 AND NOT is_bot(l.agent)
        GROUP BY p.id, p.name
        """,
        PEOPLE,
    ),
    Short(
        "possible_duplicates",
        """
        SELECT a.id, b.id AS other_id
        FROM customers a
        JOIN customers b
          ON soundex_code(surname_of(a.name)) = soundex_code(surname_of(b.name))
         AND a.country = b.country
         AND a.id < b.id
        WHERE a.newsletter AND b.newsletter AND edit_distance(a.email, b.email) <= 6
        """,
        PEOPLE,
    ),
    Short(
        "domains",
        """
        SELECT domain_of(email) AS domain, COUNT(*) AS accounts, size_band(COUNT(*)) AS band,
               COUNT_IF(luhn_ok(card)) AS payable
        FROM customers
        GROUP BY domain_of(email)
        """,
        PEOPLE,
    ),
    Short(
        "countries_of_a_test",
        """
        SELECT country, COUNT(*) AS accounts, COUNT(DISTINCT phone_digits(phone)) AS phones
        FROM customers
        GROUP BY country
        HAVING hash_bucket(country, 3) < 2 AND add_one(COUNT(*)) % 2 = 0
        """,
        PEOPLE,
    ),
    Short(
        "first_three_of_a_project",
        """
        SELECT id, code, published, place
        FROM (
            SELECT id, code, published,
                   ROW_NUMBER() OVER (PARTITION BY code ORDER BY published, id) AS place
            FROM (
                SELECT id, project_code(funding) AS code, clean_date(pubdate) AS published
                FROM publications
            )
            WHERE code IS NOT NULL AND published IS NOT NULL
        )
        WHERE place <= 3
        """,
        PEOPLE,
    ),
    Short(
        "largest_of_a_currency",
        """
        SELECT id, customer_id, place
        FROM (
            SELECT id, customer_id,
                   RANK() OVER (PARTITION BY clean_currency(currency)
                                ORDER BY to_euro(amount, currency) DESC, id) AS place
            FROM orders
        )
        WHERE place <= 20
        """,
        PEOPLE,
    ),
    Short(
        "kinds_of_visitors",
        """
        SELECT CASE WHEN is_bot(agent) THEN 'bot'
                    WHEN browser_of(agent) LIKE 'Chrome%' THEN 'chrome'
                    ELSE ip_kind(ip) END AS visitor,
               COUNT(*) AS requests
        FROM logs
        WHERE id <= 40000
        GROUP BY 1
        """,
        PEOPLE,
    ),
    Short(
        "contact_or_nothing",
        """
        SELECT id,
               CASE WHEN newsletter AND is_email(email) THEN pseudonym(lower_text(email))
                    WHEN is_url(website) THEN slug(website)
                    ELSE phone_digits(phone) END AS contact
        FROM customers
        """,
        PEOPLE,
    ),
    Short(
        "spent_in_2023",
        """
        SELECT c.id, c.name, o.total
        FROM customers c
        LEFT JOIN (
            SELECT customer_id, ROUND(SUM(to_euro(amount, currency)), 2) AS total
            FROM orders
            WHERE year_of(clean_date(placed)) = 2023
            GROUP BY customer_id
        ) o ON c.id = o.customer_id
        WHERE is_email(c.email)
        """,
        PEOPLE,
    ),
    Short(
        "projects_with_german_papers",
        """
        SELECT j.code, COUNT(p.id) AS papers
        FROM projects j
        LEFT JOIN publications p ON j.code = project_code(p.funding) AND p.language = 'de'
        WHERE to_euro(parse_amount(j.budget), j.currency) > 1000000
        GROUP BY j.code
        """,
        PEOPLE,
    ),
    Short(
        "customers_with_complaints",
        """
        SELECT c.id, c.email
        FROM customers c
        WHERE luhn_ok(c.card)
          AND EXISTS (
              SELECT 1 FROM orders o
              WHERE o.customer_id = c.id AND mentions_delay(o.note)
                AND to_euro(o.amount, o.currency) > 100
          )
        """,
        PEOPLE,
    ),
    Short(
        "customers_without_visits",
        """
        SELECT c.id, age_band(c.birth) AS band
        FROM customers c
        WHERE is_email(c.email)
          AND NOT EXISTS (
              SELECT 1 FROM logs l
              WHERE l.customer_id = c.id AND product_of_url(l.url) IS NOT NULL
                AND NOT is_bot(l.agent) AND l.status = 200
          )
        """,
        PEOPLE,
    ),
    Short(
        "projects_cited_in_2016",
        """
        SELECT id, acronym
        FROM projects
        WHERE code IN (
            SELECT project_code(funding)
            FROM publications
            WHERE year_of(clean_date(pubdate)) = 2016 AND open_access
        )
        """,
        PEOPLE,
    ),
    Short(
        "all_keys",
        """
        SELECT 'customer' AS kind, fingerprint(lower_text(email)) AS secret
        FROM customers
        WHERE is_email(email)
        UNION ALL
        SELECT 'project' AS kind, fingerprint(slug(title)) AS secret
        FROM projects
        WHERE word_count(title) > 5
        UNION ALL
        SELECT 'product' AS kind, fingerprint(sku) AS secret
        FROM products
        WHERE sku_family(sku) <> 'F'
        """,
        PEOPLE,
    ),
    Short(
        "longest_titles",
        """
        SELECT id, title
        FROM publications
        WHERE open_access
        ORDER BY word_count(title) DESC, slug(title), id
        LIMIT 50
        """,
        PEOPLE,
    ),
    Short(
        "programmes",
        """
        SELECT DISTINCT funder_of(funding) AS funder, funding_class(funding) AS programme,
                        year_of(clean_date(pubdate)) AS in_year
        FROM publications
        """,
        PEOPLE,
    ),
    Short(
        "similar_titles_in_a_project",
        """
        SELECT a.id, b.id AS other_id
        FROM publications a
        JOIN publications b
          ON project_code(a.funding) = project_code(b.funding)
         AND a.pages = b.pages
         AND a.id < b.id
        WHERE title_similarity(a.title, b.title) > 0.4
          AND word_count(a.abstract) > 24
        """,
        PEOPLE,
    ),
    Short(
        "sales_of_expensive_things",
        """
        SELECT o.id, p.sku, parse_amount(p.price) AS price
        FROM orders o
        JOIN products p ON o.product_id = p.id
        WHERE has_tag(p.tags, 'sale') AND parse_amount(p.price) > 50
          AND NOT mentions_delay(o.note)
        """,
        PEOPLE,
    ),
    Short(
        "three_tables",
        """
        SELECT age_band(c.birth) AS band, sku_family(p.sku) AS family,
               COUNT(*) AS orders_made, SUM(o.quantity) AS pieces
        FROM orders o
        JOIN customers c ON o.customer_id = c.id
        JOIN products p ON o.product_id = p.id
        WHERE is_email(c.email)
          AND year_of(clean_date(o.placed)) = 2022
          AND sku_family(p.sku) IN ('A', 'B', 'C')
        GROUP BY age_band(c.birth), sku_family(p.sku)
        """,
        PEOPLE,
    ),
    Short(
        "longer_than_average",
        """
        SELECT id, word_count(abstract) AS words
        FROM publications
        WHERE id <= 20000
          AND language = 'fr'
          AND word_count(abstract) > (SELECT AVG(word_count(abstract)) FROM publications
                                      WHERE language = 'de')
          AND month_of(clean_date(pubdate)) IN (6, 7, 8)
        """,
        PEOPLE,
    ),
    Short(
        "either_of_two",
        """
        SELECT id, citing, cited
        FROM citations
        WHERE added >= DATE'2020-01-01'
          AND (word_count(snippet) > 16 OR stem_words(snippet) LIKE '%quantum%')
          AND quarter_of(added) LIKE '%-Q2'
        """,
        PEOPLE,
    ),
)
