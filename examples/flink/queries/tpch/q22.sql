SELECT country, COUNT(*) AS customers, SUM(c_acctbal) AS balance
FROM (
  SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS country, c_acctbal, c_custkey
  FROM customer
  WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
    AND c_acctbal > (
      SELECT AVG(c_acctbal)
      FROM customer
      WHERE c_acctbal > 0.00 AND SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')))
WHERE NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)
GROUP BY country
ORDER BY country
