-- The legible letters and their zones are ready when the rates come.
SELECT /*+ BROADCAST(late_rates) */ zone, count(*) AS letters, sum(rate) AS rates
FROM (
    SELECT /*+ BROADCAST(regions) */ zone, currency
    FROM letters
    JOIN regions ON letters.region = regions.region
    WHERE is_legible(ink)
) AS legible
JOIN late_rates ON late_rates.currency = legible.currency
GROUP BY zone
