type Link = readonly [href: string, title: string];

/** Pages with a link in the navigation and in the palette, by the heading above them. */
export const GROUPS: readonly (readonly [title: string, links: readonly Link[]])[] = [
  ['', [['/app', 'Overview']]],
  [
    'Market',
    [
      ['/app/live', 'Live'],
      ['/app/symbols', 'Symbols'],
      ['/app/analytics', 'Analytics'],
    ],
  ],
  [
    'Delivery',
    [
      ['/app/streams', 'Streams'],
      ['/app/webhooks', 'Webhooks'],
      ['/app/usage', 'Usage'],
    ],
  ],
  [
    'Settings',
    [
      ['/app/settings/api-keys', 'API keys'],
      ['/app/settings/profile', 'Profile'],
      ['/app/settings/security', 'Security'],
      ['/app/settings/billing', 'Billing'],
      ['/app/plans', 'Plans'],
      ['/app/settings/account', 'Account'],
    ],
  ],
  [
    'Platform',
    [
      ['/app/docs', 'Docs'],
      ['/app/status', 'Status'],
      ['/app/support', 'Support'],
      ['/app/generator', 'Generator'],
    ],
  ],
];
/** Pages that the palette alone leads to; another page links to them. */
export const TOOLS: readonly Link[] = [['/app/streams/frames', 'Frame inspector']];
/** Other documents. */
export const DOCUMENTS: readonly Link[] = [['/', 'Market page for visitors']];
/** What can be done from anywhere: the page opens with its dialog. */
export const ACTIONS: readonly Link[] = [
  ['/app/settings/api-keys?new=1', 'Create API key'],
  ['/app/webhooks?new=1', 'Create webhook endpoint'],
  ['/app/support?new=1', 'Write to support'],
];
