-- What a thousand keys have, by windows. All rows are exchanged: nothing is added up before (table.optimizer.agg-phase-strategy).
SELECT k, window_end, COUNT(*) AS n_rows, SUM(v) AS total
FROM TABLE(TUMBLE(TABLE keyed, DESCRIPTOR(happened), INTERVAL '10' SECOND))
GROUP BY k, window_start, window_end
