// Sentences that scripts show, in the page's language: the server puts them into the page.
const element = document.getElementById("texts");
const texts: Record<string, string> = element?.textContent ? (JSON.parse(element.textContent) as Record<string, string>) : {};

export function say(key: string, values: Record<string, string | number> = {}): string {
  let text = texts[key] ?? key;
  for (const [name, value] of Object.entries(values)) text = text.replaceAll(`{${name}}`, String(value));
  return text;
}
