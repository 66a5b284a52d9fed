/** A graph: its title, the unit of Grafana, and queries with their legends. */
export type Graph = readonly [
  title: string,
  unit: Unit,
  ...queries: (readonly [expr: string, legend: string])[],
];
type Unit = 's' | 'bytes' | 'short' | 'ops' | 'percentunit' | 'bool_yes_no';

export interface DashboardSource {
  readonly uid: string;
  readonly title: string;
  readonly graphs: readonly Graph[];
}

/** Grafana replaces it by a range that fits the zoom. */
const R = '$__rate_interval';
const rate = (metric: string, by = '') => `sum${by} (rate(${metric}[${R}]))`;
const quantile = (share: number, metric: string, by = 'le') =>
  `histogram_quantile(${share}, sum by (${by}) (rate(${metric}_bucket[${R}])))`;
const quantiles = (metric: string) =>
  [
    [quantile(0.5, metric), 'p50'],
    [quantile(0.99, metric), 'p99'],
  ] as const;
const within100ms = (metric: string) =>
  `sum(rate(${metric}_bucket{le="0.1"}[${R}])) / sum(rate(${metric}_count[${R}]))`;

/** What operators watch, one dashboard for each question. */
export const DASHBOARD_SOURCES: readonly DashboardSource[] = [
  {
    uid: 'pillole-flow',
    title: 'pillole: flow',
    graphs: [
      [
        'Pills by outcome',
        'ops',
        [rate('pillole_ingest_pills_total', ' by (outcome)'), '{{outcome}}'],
      ],
      [
        'Requests to ingest',
        'ops',
        [rate('pillole_ingest_requests_total', ' by (outcome)'), '{{outcome}}'],
      ],
      ['Answer of ingest', 's', ...quantiles('pillole_ingest_answer_seconds')],
      [
        'Writes to Kafka',
        's',
        [quantile(0.99, 'pillole_produce_batch_seconds', 'le, job'), '{{job}} p99'],
      ],
      [
        'Records judged',
        'ops',
        [rate('pillole_latest_records_total', ' by (outcome)'), '{{outcome}}'],
      ],
      [
        'Requests in flight',
        'short',
        ['sum by (instance) (pillole_ingest_requests_in_flight)', '{{instance}}'],
      ],
      [
        'Records written to Kafka',
        'ops',
        [rate('pillole_produced_records_total', ' by (job)'), '{{job}}'],
      ],
      ['Symbols known', 'short', ['max(pillole_ingest_symbols)', 'symbols']],
      ['Clock skew', 's', ['pillole_ingest_clock_skew_seconds', '{{instance}}']],
      ['Silent generators', 'short', ['max(pillole_generators_silent)', 'generators']],
      ['Ready', 'bool_yes_no', ['min by (job) (pillole_process_ready)', '{{job}}']],
      [
        'Engines that answer',
        'bool_yes_no',
        ['min by (job, dependency) (pillole_dependency_up)', '{{job}} {{dependency}}'],
      ],
      [
        'Versions',
        'short',
        ['count by (job, version) (pillole_build_info)', '{{job}} {{version}}'],
      ],
    ],
  },
  {
    uid: 'pillole-promise',
    title: 'pillole: promise of 100 ms',
    graphs: [
      [
        'Within 100 ms',
        'percentunit',
        [within100ms('pillole_stream_receive_to_send_seconds'), 'sockets'],
        [within100ms('pillole_webhook_since_received_seconds'), 'webhooks'],
      ],
      [
        'Slow pills',
        'percentunit',
        ['pillole:promise_slow:ratio_rate5m', '{{channel}} 5 min'],
        ['pillole:promise_slow:ratio_rate1h', '{{channel}} 1 h'],
        ['pillole:promise_slow:ratio_rate3d', '{{channel}} 3 d'],
      ],
      ['Receive to socket', 's', ...quantiles('pillole_stream_receive_to_send_seconds')],
      ['Receive to webhook', 's', ...quantiles('pillole_webhook_since_received_seconds')],
      [
        'Canary: p99 by channel',
        's',
        [quantile(0.99, 'pillole_canary_seconds', 'le, channel'), '{{channel}}'],
      ],
      [
        'Canary: pills',
        'ops',
        [rate('pillole_canary_pills_total', ' by (channel, outcome)'), '{{channel}} {{outcome}}'],
      ],
      [
        'Delay of the event loop',
        's',
        ['nodejs_eventloop_lag_p99_seconds', '{{job}} {{instance}}'],
      ],
      ['CPU', 'percentunit', [rate('process_cpu_seconds_total', ' by (job)'), '{{job}}']],
    ],
  },
  {
    uid: 'pillole-lag',
    title: 'pillole: lag',
    graphs: [
      [
        'Records to read',
        'short',
        ['max by (job, topic) (pillole_consumer_lag_records)', '{{job}} {{topic}}'],
      ],
      [
        'Pills neither delivered nor stored',
        'short',
        ['max by (instance) (pillole_webhook_unsettled_pills)', '{{instance}}'],
      ],
      [
        'Rows that wait for ClickHouse',
        'short',
        ['sum by (instance) (pillole_analytics_buffered_rows)', '{{instance}}'],
      ],
      ['Rows written again', 'ops', [rate('pillole_latest_rewritten_rows_total'), 'rows']],
    ],
  },
  {
    uid: 'pillole-streams',
    title: 'pillole: streams',
    graphs: [
      ['Connections', 'short', ['sum by (instance) (pillole_stream_connections)', '{{instance}}']],
      [
        'Opened and closed',
        'ops',
        [rate('pillole_stream_opened_total'), 'opened'],
        [rate('pillole_stream_closed_total', ' by (reason)'), 'closed: {{reason}}'],
      ],
      [
        'Deliveries',
        'ops',
        [rate('pillole_stream_deliveries_total'), 'pills'],
        [rate('pillole_stream_frames_sent_total'), 'frames'],
      ],
      [
        'Pills that latest mode left out',
        'ops',
        [rate('pillole_stream_pills_skipped_total'), 'pills'],
      ],
      ['Pills sent', 'ops', [rate('pillole_stream_pills_sent_total'), 'pills']],
      [
        'Records read',
        'ops',
        [rate('pillole_stream_records_total', ' by (outcome)'), '{{outcome}}'],
      ],
      ['Queues', 'bytes', ['sum by (instance) (pillole_stream_queue_bytes)', '{{instance}}']],
      [
        'Memory',
        'bytes',
        ['process_resident_memory_bytes{job=~"stream|dedicated"}', '{{job}} {{instance}}'],
      ],
    ],
  },
  {
    uid: 'pillole-webhooks',
    title: 'pillole: webhooks and destinations',
    graphs: [
      ['Attempts', 'ops', [rate('pillole_webhook_attempts_total', ' by (outcome)'), '{{outcome}}']],
      [
        'Endpoints',
        'short',
        ['max(pillole_webhook_endpoints)', 'all'],
        ['max(pillole_webhook_failing_endpoints)', 'failing'],
      ],
      [
        'Disabled',
        'short',
        ['sum by (reason) (increase(pillole_webhook_disabled_endpoints_total[1h]))', '{{reason}}'],
      ],
      ['Messages that wait', 'short', ['max(pillole_webhook_waiting_messages)', 'messages']],
      ['Receive to first attempt', 's', ...quantiles('pillole_webhook_since_received_seconds')],
      ['Egress proxy away', 'ops', [rate('pillole_webhook_egress_down_total'), 'attempts']],
      [
        'Not kept',
        'ops',
        [rate('pillole_webhook_pills_not_kept_total'), 'pills'],
        [rate('pillole_webhook_attempt_lines_lost_total'), 'lines of the log'],
      ],
      [
        'Destinations',
        'short',
        ['sum by (instance) (pillole_running_destinations)', '{{instance}}'],
        ['sum(pillole_failing_destinations)', 'failing'],
      ],
      [
        'Destinations: attempts',
        'ops',
        [rate('pillole_destination_attempts_total', ' by (type, outcome)'), '{{type}} {{outcome}}'],
      ],
      [
        'Destinations: pills',
        'ops',
        [rate('pillole_destination_pills_total', ' by (type)'), '{{type}}'],
      ],
    ],
  },
  {
    uid: 'pillole-quotas',
    title: 'pillole: API and quotas',
    graphs: [
      ['Requests', 'ops', [rate('pillole_api_requests_total', ' by (status)'), '{{status}}']],
      [
        'Routes',
        'ops',
        [`topk(10, ${rate('pillole_api_requests_total', ' by (route)')})`, '{{route}}'],
      ],
      ['Answers', 's', ...quantiles('pillole_api_answer_seconds')],
      [
        'Calls with a limit',
        'ops',
        [rate('pillole_api_calls_total', ' by (outcome)'), '{{outcome}}'],
      ],
      ['Failed requests', 'percentunit', ['pillole:failed_requests:ratio_rate5m', '{{service}}']],
      [
        'Mails not sent',
        'short',
        ['sum by (reason) (increase(pillole_mails_dropped_total[1h]))', '{{reason}}'],
      ],
    ],
  },
  {
    uid: 'pillole-clickhouse',
    title: 'pillole: ClickHouse',
    graphs: [
      ['Rows inserted', 'ops', [rate('pillole_analytics_rows_total'), 'rows']],
      ['Duration of an insert', 's', ...quantiles('pillole_analytics_insert_seconds')],
      [
        'Records to read',
        'short',
        ['max by (topic) (pillole_consumer_lag_records{job="analytics"})', '{{topic}}'],
      ],
      [
        'ClickHouse answers',
        'bool_yes_no',
        ['min by (job) (pillole_dependency_up{dependency="clickhouse"})', '{{job}}'],
      ],
      [
        'Free disk',
        'percentunit',
        ['node_filesystem_avail_bytes / node_filesystem_size_bytes', '{{instance}} {{mountpoint}}'],
      ],
    ],
  },
  {
    uid: 'pillole-security',
    title: 'pillole: security',
    graphs: [
      [
        'Events',
        'ops',
        [`topk(15, ${rate('pillole_security_events_total', ' by (event)')})`, '{{event}}'],
      ],
      ['Version of the pepper', 'short', ['pillole_pepper_version', '{{job}} {{instance}}']],
      ['Versions accepted', 'short', ['pillole_pepper_versions', '{{job}} {{instance}}']],
      [
        'Pepper file faulty',
        'bool_yes_no',
        ['max by (job) (pillole_pepper_file_faulty)', '{{job}}'],
      ],
      [
        'Certificates end in',
        's',
        ['pillole_canary_certificate_expiry_timestamp_seconds - time()', '{{channel}}'],
      ],
    ],
  },
];
