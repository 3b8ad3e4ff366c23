// What faro/c.h says of aggregations.
#include "faro/aggregate.h"

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/return_if_error.h"
#include "c/errors.h"
#include "c/handles.h"
#include "c/sized.h"

using namespace faro::c;
using faro::AggregationSpec;
using faro::Code;
using faro::Column;
using faro::Grouping;
using faro::Outcome;
using faro::Result;
using faro::SchemaAggregation;
using faro::Status;
using faro::Wait;

static_assert(FARO_COLUMN_BYTES == static_cast<int>(faro::ColumnType::bytes) &&
              FARO_COLUMN_BYTES + 1 == faro::kColumnTypes);
static_assert(FARO_FUNCTION_ANY == static_cast<int>(faro::AggregateFunction::any));
static_assert(sizeof(faro::AggregationMetrics) ==
                  sizeof(faro_aggregation_metrics) - sizeof(uint64_t),
              "no counter is left out");

namespace {

/// A number that C++ has a byte for; what does not fit it is none of an enum.
template <typename Enum>
Enum enum_of(int32_t number) noexcept {
  return static_cast<Enum>(number < 0 || number > UINT8_MAX ? UINT8_MAX : number);
}

Column column_of(const faro_column& given) {
  return {enum_of<faro::ColumnType>(given.type), given.nullable != 0, given.scale, given.precision};
}

Result<Grouping> grouping_of(const faro_aggregation_spec& given) {
  FARO_RETURN_IF_ERROR(need_array(given.columns, given.column_count, "spec->columns"));
  FARO_RETURN_IF_ERROR(need_array(given.keys, given.key_count, "spec->keys"));
  FARO_RETURN_IF_ERROR(need_array(given.aggregates, given.aggregate_count, "spec->aggregates"));
  std::vector<Column> columns;
  for (const faro_column& column : std::span(given.columns, given.column_count))
    columns.push_back(column_of(column));
  Grouping grouping;
  FARO_ASSIGN_OR_RETURN(grouping.rows, faro::Schema::make(std::move(columns)));
  grouping.keys.assign(given.keys, given.keys + given.key_count);
  for (const faro_aggregate& each : std::span(given.aggregates, given.aggregate_count)) {
    grouping.aggregates.push_back(
        {enum_of<faro::AggregateFunction>(each.function), each.column, {}});
    if (each.has_result != 0) grouping.aggregates.back().result = column_of(each.result);
  }
  return grouping;
}

}  // namespace

faro_aggregation::faro_aggregation(std::unique_ptr<SchemaAggregation> made)
    : aggregation(std::move(made)) {
  for (const Column& column : aggregation->results().columns()) {
    columns.push_back({static_cast<int32_t>(column.type), column.nullable ? 1 : 0, column.scale,
                       column.precision});
  }
}

faro_code faro_worker_make_aggregation(faro_worker* worker, const faro_aggregation_spec* spec,
                                       faro_aggregation** aggregation) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(worker, "worker"));
    FARO_RETURN_IF_ERROR(need(aggregation, "aggregation"));
    faro_aggregation_spec given;
    FARO_RETURN_IF_ERROR(read(spec, "spec", given));
    FARO_RETURN_IF_ERROR(need_array(given.senders, given.sender_count, "spec->senders"));
    FARO_RETURN_IF_ERROR(need_array(given.receivers, given.receiver_count, "spec->receivers"));
    FARO_ASSIGN_OR_RETURN(const Grouping grouping, grouping_of(given));
    const AggregationSpec asked{query_of(given.query),
                                given.stage,
                                {given.senders, given.senders + given.sender_count},
                                {given.receivers, given.receivers + given.receiver_count},
                                {}};
    FARO_ASSIGN_OR_RETURN(auto made, SchemaAggregation::make(worker->worker, asked, grouping));
    *aggregation = new faro_aggregation(std::move(made));
    return Status::Ok();
  });
}

faro_code faro_aggregation_describe(const faro_aggregation* aggregation,
                                    faro_aggregation_info* info) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(aggregation, "aggregation"));
    FARO_RETURN_IF_ERROR(need_struct(info, "info"));
    faro_aggregation_info told{};
    told.columns = aggregation->columns.data();
    told.column_count = static_cast<uint32_t>(aggregation->columns.size());
    told.row_bytes = aggregation->aggregation->results().row_bytes();
    fill(*info, told);
    return Status::Ok();
  });
}

faro_outcome faro_aggregation_add(faro_aggregation* aggregation, const void* rows, size_t bytes,
                                  int64_t wait_ns, faro_added* added) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(aggregation, "aggregation"));
    FARO_RETURN_IF_ERROR(need_struct(added, "added"));
    fill(*added, faro_added{});
    FARO_RETURN_IF_ERROR(need_array(rows, bytes, "rows"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    const SchemaAggregation::Added told =
        aggregation->aggregation->add({static_cast<const std::byte*>(rows), bytes}, *wait);
    faro_added done{};
    done.rows = told.rows;
    done.bytes = told.bytes;
    fill(*added, done);
    return {told.outcome, *aggregation->aggregation};
  });
}

faro_outcome faro_aggregation_finish(faro_aggregation* aggregation, int64_t wait_ns) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(aggregation, "aggregation"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    return {aggregation->aggregation->finish(*wait), *aggregation->aggregation};
  });
}

faro_outcome faro_aggregation_next(faro_aggregation* aggregation, int64_t wait_ns,
                                   faro_rows* groups) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(aggregation, "aggregation"));
    FARO_RETURN_IF_ERROR(need_struct(groups, "groups"));
    const Result<Wait> wait = wait_of(wait_ns);
    if (!wait.ok()) return wait.status();
    faro::PackedRows next;
    const Outcome outcome = aggregation->aggregation->next(next, *wait);
    faro_rows told{};
    told.address = next.bytes.data();
    told.bytes = next.bytes.size();
    told.row_count = static_cast<uint32_t>(next.count);
    told.row_bytes = aggregation->aggregation->results().row_bytes();
    fill(*groups, told);
    return {outcome, *aggregation->aggregation};
  });
}

faro_outcome faro_aggregation_stop(faro_aggregation* aggregation) {
  return answered([&]() -> Answer {
    FARO_RETURN_IF_ERROR(need(aggregation, "aggregation"));
    return {aggregation->aggregation->stop(), *aggregation->aggregation};
  });
}

faro_code faro_aggregation_status(const faro_aggregation* aggregation) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(aggregation, "aggregation"));
    return aggregation->aggregation->status();
  });
}

faro_code faro_aggregation_read_metrics(const faro_aggregation* aggregation,
                                        faro_aggregation_metrics* metrics) {
  return coded([&]() -> Status {
    FARO_RETURN_IF_ERROR(need(aggregation, "aggregation"));
    FARO_RETURN_IF_ERROR(need_struct(metrics, "metrics"));
    const faro::AggregationMetrics now = aggregation->aggregation->metrics();
    faro_aggregation_metrics told{};
    told.rows = now.rows;
    told.rows_passed = now.rows_passed;
    told.states_sent = now.states_sent;
    told.states_received = now.states_received;
    told.groups = now.groups;
    told.table_states = now.table_states;
    told.most_table_states = now.most_table_states;
    told.partitions_split = now.partitions_split;
    told.spilled_bytes = now.spilled_bytes;
    told.peak_bytes = now.peak_bytes;
    fill(*metrics, told);
    return Status::Ok();
  });
}

void faro_aggregation_destroy(faro_aggregation* aggregation) { delete aggregation; }
