-- Returns the legible letters with the rates of their days.
SELECT zone, count(*) AS letters, sum(rate) AS rates
FROM late_rates
JOIN letters ON late_rates.currency = letters.currency
JOIN regions ON letters.region = regions.region
WHERE is_legible(ink)
GROUP BY zone
