# What `./run test --long` runs, one after the other. A line each: its name, and the command. A command is quiet about what
# it does; its exit code says whether it passed, and its last line is what the page says.
#
# part <name> <command...>

part headers         cmake --build build/release --target check_headers
part sources         ./run build debug
part seeds           build/release/bin/faro-lab simulate --seed 1 --runs 100000 --resume build/long/seeds
part seeds_channels  build/release/bin/faro-lab simulate --channels --seed 1 --runs 100000 --resume build/long/seeds_channels
part soak            build/release/bin/faro-lab soak --seconds 3600
part soak_kills      build/release/bin/faro-lab soak --kills 200
part soak_churn      build/release/bin/faro-lab soak --churn --seconds 1200
part large_tests     ctest --test-dir build/release --output-on-failure -L '^long$'
part tests_20_times  ctest --test-dir build/release --parallel 4 --repeat until-fail:20 -L '^(unit|contract|concurrency|system)$'
part trouble_to_nodes env TEST_LANE_ENDS=node build/release/tests/bin/shuffle_trouble_test --gtest_brief=1
part trouble_to_both env TEST_LANE_ENDS=both build/release/tests/bin/shuffle_trouble_test --gtest_brief=1
part trouble_in_turns env TEST_SCHEDULE=phases TEST_TRANSPORT=tcp build/release/tests/bin/shuffle_trouble_test --gtest_brief=1
part one_processor   taskset -c 0 ctest --test-dir build/release --parallel 2
part sanitizers      ./run sanitize
part fuzz            ./run fuzz 3600
part evaluate        ./run evaluate --out build/long/evaluate
part aarch64         ./run aarch64
part compatibility   ./run compatibility
part flink_module    tests/flink/module
part flink           ./run flink-tests --resume build/long/flink-2.3.0
part flink_1_20      ./run flink-tests --version 1.20.5 --resume build/long/flink-1.20.5
part flink_example   examples/flink/test
part flink_image     docker/flink/test
part flink_churn_1s  tests/flink/reliability/run churn --liveness 1s
part flink_churn_tcp_1s tests/flink/reliability/run churn --liveness 1s --transport tcp --seed 2
part flink_churn     tests/flink/reliability/run churn --seed 3
part flink_churn_tcp tests/flink/reliability/run churn --transport tcp --seed 4
part flink_churn_netty tests/flink/reliability/run churn --netty --seed 3
part flink_departures tests/flink/reliability/run departures --transport tcp
part flink_departures_shm tests/flink/reliability/run departures --count 20
part flink_pause     tests/flink/reliability/run pause
part flink_pause_tcp tests/flink/reliability/run pause --transport tcp
part flink_clear_text tests/flink/reliability/run clear_text
part flink_clusters  tests/flink/reliability/run clusters
part flink_asan      tests/flink/reliability/asan
part guests          ./run softroce
part guests_faults   ./run softroce faults channel_faults
part guests_changing ./run softroce changing
part guests_soak     ./run softroce soak
part guests_sql      ./run softroce sql
part guests_flink    ./run softroce flink
