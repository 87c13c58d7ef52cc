"""Pipelines over publications, projects and logs, in the manner of UDFBench."""

from __future__ import annotations

from typing import Final

from bench.short.queries import Short

UDFBENCH: Final = "udfbench"
"""The group of these queries."""

PIPELINES: Final = (
    Short(
        "date_parts",
        """
        SELECT id,
               day_of(clean_date(pubdate)) AS pub_day,
               month_of(clean_date(pubdate)) AS pub_month,
               year_of(clean_date(pubdate)) AS pub_year
        FROM publications
        """,
        UDFBENCH,
    ),
    Short(
        "author_pipeline",
        """
        SELECT id, sort_list(sort_terms(remove_short_terms(lower_text(authors)))) AS normal
        FROM publications
        """,
        UDFBENCH,
    ),
    Short(
        "funded_in_a_span",
        """
        SELECT id, project_code(funding) AS code, funder_of(funding) AS funder,
               funding_class(funding) AS programme
        FROM publications
        WHERE clean_date(pubdate) >= '2015-01-01'
          AND clean_date(pubdate) < '2018-01-01'
          AND project_code(funding) IS NOT NULL
        """,
        UDFBENCH,
    ),
    Short(
        "frequent_author_pairs",
        """
        SELECT pair, COUNT(*) AS papers, MIN(p.id) AS first_paper
        FROM publications p
        LATERAL VIEW explode(author_pairs(sort_list(lower_text(p.authors)))) t AS pair
        WHERE author_count(p.authors) BETWEEN 2 AND 6
        GROUP BY pair
        HAVING COUNT(*) >= 4
        """,
        UDFBENCH,
    ),
    Short(
        "terms_of_abstracts",
        """
        SELECT term, COUNT(*) AS papers
        FROM (
            SELECT explode(keywords_of(stem_words(remove_short_words(abstract)))) AS term
            FROM publications
            WHERE language = 'en'
        )
        GROUP BY term
        HAVING COUNT(*) > 20
        """,
        UDFBENCH,
    ),
    Short(
        "publications_of_projects",
        """
        SELECT j.code, funder_of(j.funding) AS funder, COUNT(*) AS papers,
               MIN(clean_date(p.pubdate)) AS first_day, MAX(clean_date(p.pubdate)) AS last_day
        FROM publications p
        JOIN projects j ON project_code(p.funding) = j.code
        WHERE year_of(clean_date(p.pubdate)) > 2012
        GROUP BY j.code, funder_of(j.funding)
        """,
        UDFBENCH,
    ),
    Short(
        "before_during_after",
        """
        SELECT j.code, j.acronym,
               SUM(CASE WHEN clean_date(p.pubdate) < clean_date(j.start_text)
                        THEN 1 ELSE 0 END) AS before_it,
               SUM(CASE WHEN clean_date(p.pubdate) BETWEEN clean_date(j.start_text)
                                                       AND clean_date(j.end_text)
                        THEN 1 ELSE 0 END) AS during_it,
               SUM(CASE WHEN clean_date(p.pubdate) > clean_date(j.end_text)
                        THEN 1 ELSE 0 END) AS after_it
        FROM publications p
        JOIN projects j ON project_code(p.funding) = j.code
        GROUP BY j.code, j.acronym
        """,
        UDFBENCH,
    ),
    Short(
        "traffic_by_browser_and_hour",
        """
        SELECT browser_of(agent) AS browser, log_hour(logged) AS in_hour,
               COUNT(*) AS requests, SUM(bytes) AS volume,
               COUNT(DISTINCT ip_kind(ip)) AS kinds
        FROM logs
        WHERE NOT is_bot(agent)
        GROUP BY browser_of(agent), log_hour(logged)
        """,
        UDFBENCH,
    ),
    Short(
        "snippets_that_quote",
        """
        SELECT c.id, p.id AS paper,
               word_jaccard(remove_short_words(c.snippet), remove_short_words(p.title)) AS likeness
        FROM citations c
        JOIN publications p ON c.cited = p.id
        WHERE word_jaccard(remove_short_words(c.snippet), remove_short_words(p.title)) > 0.3
          AND word_count(c.snippet) >= 6
        """,
        UDFBENCH,
    ),
    Short(
        "pairs_around_projects",
        """
        WITH pairs AS (
            SELECT clean_date(p.pubdate) AS published,
                   project_code(p.funding) AS paper_code,
                   explode(author_pairs(sort_list(sort_terms(
                       remove_short_terms(lower_text(p.authors)))))) AS pair
            FROM publications p
            WHERE author_count(p.authors) BETWEEN 2 AND 4
        ),
        funded AS (
            SELECT j.code, pairs.pair,
                   clean_date(j.start_text) AS first_day,
                   clean_date(j.end_text) AS last_day
            FROM pairs
            JOIN projects j ON pairs.paper_code = j.code
        )
        SELECT funded.code,
               COUNT_IF(pairs.published < funded.first_day) AS before_it,
               COUNT_IF(pairs.published BETWEEN funded.first_day AND funded.last_day) AS during_it,
               COUNT_IF(pairs.published > funded.last_day) AS after_it
        FROM funded
        JOIN pairs ON funded.pair = pairs.pair
        GROUP BY funded.code
        """,
        UDFBENCH,
    ),
    Short(
        "quarters",
        """
        SELECT quarter_of(as_day(clean_date(pubdate))) AS quarter,
               COUNT(*) AS papers,
               SUM(author_count(authors)) AS authorships,
               COUNT_IF(project_code(funding) IS NOT NULL) AS funded,
               MAX(word_count(title)) AS longest
        FROM publications
        GROUP BY quarter_of(as_day(clean_date(pubdate)))
        """,
        UDFBENCH,
    ),
    Short(
        "campaigns",
        """
        SELECT url_param(url, 'utm_source') AS campaign, status,
               COUNT(*) AS requests,
               COUNT(DISTINCT product_of_url(url)) AS products_seen,
               COUNT(url_param(url, 'q')) AS searches
        FROM logs
        WHERE is_url(url)
        GROUP BY url_param(url, 'utm_source'), status
        """,
        UDFBENCH,
    ),
)
