/** Pages with a link in the navigation and in the palette. */
export const PAGES = [
  ['/app', 'Overview'],
  ['/app/symbols', 'Symbols'],
  ['/app/analytics', 'Analytics'],
  ['/app/streams', 'Streams'],
  ['/app/webhooks', 'Webhooks'],
  ['/app/usage', 'Usage'],
  ['/app/plans', 'Plans'],
  ['/app/status', 'Status'],
  ['/app/support', 'Support'],
  ['/app/docs', 'Docs'],
] as const;
export const SETTINGS = [
  ['/app/settings/api-keys', 'API keys'],
  ['/app/settings/security', 'Security'],
  ['/app/settings/billing', 'Billing'],
  ['/app/settings/account', 'Account'],
] as const;
/** Pages that the palette alone leads to; another page links to them. */
export const TOOLS = [['/app/streams/frames', 'Frame inspector']] as const;
/** Another document: the market page, which also has the generator's view for the operator. */
export const DOCUMENTS = [
  ['/', 'Live'],
  ['/#generator', 'Generator'],
] as const;
