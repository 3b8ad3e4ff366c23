# Two machines: two guests, connected by their network cards. $1: the number of this one, 1 or 2.
source tests/softroce/lib/suite.sh

self=$1
here=$(address_of "$self") there=$(address_of $((3 - self)))

ip link set eth0 mtu 9000 up name net1
ip address add "$here/24" dev net1
rdma_over rxe 1


step "rping from guest to guest"
if [[ $self -eq 1 ]]; then
  rping -s -a "$here" -C 20 -V
else
  answers() { rping -c -a "$there" -C 20 -V; }
  wait_until 60 "the other guest to answer rping" answers
fi
expect_clean rxe1

step "a two-stage shuffle from guest to guest"
status=0
"$bin/faro-lab" bench two-stage --transport verbs --workers 2 --rows 100000 --repetitions 1 \
  --node $((self - 1)) --nodes "$(address_of 1):7100,$(address_of 2):7100" >"$share/two_stage.log" 2>&1 || status=$?
cat "$share/two_stage.log"
expect_equal "exit code" "$status" 0
expect_at_least "packets" "$(device_counter rxe1 sent_pkts)" 100
expect_clean rxe1
