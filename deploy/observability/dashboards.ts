import type { Dashboard, Panel } from '@grafana/schema';
import { DASHBOARD_SOURCES, type DashboardSource, type Graph } from './dashboard-sources.ts';

/** Columns of Grafana's grid, and the height of a graph in its rows. */
const COLUMNS = 24;
const WIDTH = 12;
const HEIGHT = 8;
// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const;

/** The dashboards over Prometheus, by the name of their file. */
export const DASHBOARDS: ReadonlyMap<string, Dashboard> = new Map(
  DASHBOARD_SOURCES.map((source) => [
    `${source.uid.replace('pillole-', '')}.json`,
    dashboardOf(source),
  ]),
);

function dashboardOf({ uid, title, graphs }: DashboardSource): Dashboard {
  return {
    uid,
    title,
    schemaVersion: 41,
    version: 1,
    editable: true,
    timezone: 'utc',
    refresh: '10s',
    time: { from: 'now-1h', to: 'now' },
    tags: ['pillole'],
    templating: {
      list: [{ name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Prometheus' }],
    },
    annotations: { list: [] },
    links: [
      {
        type: 'dashboards',
        title: 'pillole',
        tags: ['pillole'],
        asDropdown: true,
        icon: 'external link',
        includeVars: true,
        keepTime: true,
        targetBlank: false,
        tooltip: '',
      },
    ],
    panels: graphs.map(panelOf),
  };
}

function panelOf([title, unit, ...queries]: Graph, at: number): Panel {
  return {
    id: at + 1,
    type: 'timeseries',
    title,
    datasource: DATASOURCE,
    gridPos: {
      x: (at * WIDTH) % COLUMNS,
      y: Math.floor((at * WIDTH) / COLUMNS) * HEIGHT,
      w: WIDTH,
      h: HEIGHT,
    },
    fieldConfig: { defaults: { unit, ...(unit === 's' ? {} : { min: 0 }) }, overrides: [] },
    options: {},
    targets: queries.map(([expr, legendFormat], query) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + query),
      datasource: DATASOURCE,
      expr,
      legendFormat,
      range: true,
    })),
  };
}
