// Light, dark, or as the system says. Runs before the first paint, so that the page never flashes in the other theme.
type Theme = "light" | "dark" | "auto";

const KEY = "theme";
const ORDER: Theme[] = ["auto", "light", "dark"];
const SIGNS: Record<Theme, string> = { auto: "◐", light: "☀", dark: "☾" };

function kept(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto"; // storage is switched off: the system's theme it is
  }
}

function apply(theme: Theme): void {
  if (theme === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
}

apply(kept());

document.addEventListener("DOMContentLoaded", () => {
  const button = document.querySelector<HTMLButtonElement>("[data-theme-toggle]");
  if (!button) return;
  let theme = kept();
  const show = () => {
    const name = button.dataset[theme] ?? theme;
    button.textContent = SIGNS[theme];
    button.title = name;
    button.setAttribute("aria-label", name);
  };
  button.hidden = false;
  show();
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "auto";
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // storage is switched off: the choice lasts as long as this page
    }
    apply(theme);
    show();
  });
});
