/**
 * The path of the next page: `next` of every list.
 * @param url of the request @param changes parameters that lead to the next page
 */
export function nextPage(url: string, changes: Readonly<Record<string, string>>): string {
  const [path = '', query] = url.split('?', 2);
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) next.set(name, value);
  return `${path}?${next}`;
}
