/** Complete calls with a key, for curl, TypeScript and Python without further packages. */
export function examplesOf(api: string, key: string): readonly (readonly [string, string])[] {
  const url = `${api}/api/pills/latest?symbol=7203.T`;
  return [
    ['curl', `curl -H 'X-API-Key: ${key}' '${url}'`],
    [
      'TypeScript',
      `const headers = { 'X-API-Key': '${key}' };
const answer = await fetch('${url}', { headers });
console.log(answer.status, await answer.json());`,
    ],
    [
      'Python',
      `import json, urllib.request

headers = {"X-API-Key": "${key}"}
request = urllib.request.Request("${url}", headers=headers)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer))`,
    ],
  ];
}
