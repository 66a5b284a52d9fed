// The bar above the API reference, and the theme that the market page stores.
const bar = document.createElement('header');
bar.className = 'reference-bar';
for (const [text, address] of [
  ['← pillole', '/'],
  ['OpenAPI document', '/openapi.json'],
  ['AsyncAPI document', '/asyncapi.json'],
  ['Problems', '/problems'],
]) {
  const link = document.createElement('a');
  link.href = address;
  link.textContent = text;
  bar.append(link);
}
document.body.prepend(bar);

const viewport = document.createElement('meta');
viewport.name = 'viewport';
viewport.content = 'width=device-width, initial-scale=1';
document.head.append(viewport);

try {
  const chosen = localStorage.getItem('pillole-theme');
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
} catch {
  // The browser refuses storage: the system decides.
}
