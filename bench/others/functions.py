"""The functions of the queries with their types, as a session gets to know them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from bench.others import records, texts
from bench.short.registered import Registered

FUNCTIONS: Final = (
    Registered(records.add_one, "bigint"),
    Registered(records.size_band, "string"),
    Registered(records.clean_date, "string"),
    Registered(records.as_day, "date"),
    Registered(records.year_of, "bigint"),
    Registered(records.month_of, "bigint"),
    Registered(records.day_of, "bigint"),
    Registered(records.quarter_of, "string"),
    Registered(records.age_band, "string"),
    Registered(records.log_hour, "bigint"),
    Registered(texts.author_count, "bigint"),
    Registered(texts.remove_short_terms, "string"),
    Registered(texts.sort_terms, "string"),
    Registered(texts.sort_list, "string"),
    Registered(texts.author_pairs, "array<string>"),
    Registered(texts.author_list, "array<string>"),
    Registered(records.project_code, "string"),
    Registered(records.funder_of, "string"),
    Registered(records.funding_class, "string"),
    Registered(records.parse_amount, "double"),
    Registered(records.to_euro, "double"),
    Registered(records.clean_currency, "string"),
    Registered(texts.lower_text, "string"),
    Registered(texts.word_count, "bigint"),
    Registered(texts.remove_short_words, "string"),
    Registered(texts.stem_words, "string"),
    Registered(texts.keywords_of, "array<string>"),
    Registered(texts.readability, "double"),
    Registered(texts.slug, "string"),
    Registered(texts.title_similarity, "double"),
    Registered(texts.word_jaccard, "double"),
    Registered(texts.edit_distance, "bigint"),
    Registered(records.has_tag, "boolean"),
    Registered(texts.mentions_delay, "boolean"),
    Registered(records.surname_of, "string"),
    Registered(records.soundex_code, "string"),
    Registered(records.is_email, "boolean"),
    Registered(records.domain_of, "string"),
    Registered(records.mask_email, "string"),
    Registered(records.is_url, "boolean"),
    Registered(records.url_param, "string"),
    Registered(records.product_of_url, "bigint"),
    Registered(records.browser_of, "string"),
    Registered(records.is_bot, "boolean"),
    Registered(records.ip_kind, "string"),
    Registered(records.phone_digits, "string"),
    Registered(records.luhn_ok, "boolean"),
    Registered(records.mask_card, "string"),
    Registered(records.sku_family, "string"),
    Registered(texts.fingerprint, "string"),
    Registered(texts.pseudonym, "string"),
    Registered(texts.hash_bucket, "bigint"),
)


def register_all(spark: SparkSession) -> None:
    """Make all functions known to a session."""
    for function in FUNCTIONS:
        function.register(spark)
