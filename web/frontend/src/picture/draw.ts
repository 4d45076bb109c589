// Finds the figures on a page that ask for a picture and draws those it knows.
import { drawPageTable } from "./page_table";
import type { Json } from "./model";

interface Data {
  inputs: Json;
  expected: Json;
  got: Json;
}

export function drawPictures(root: ParentNode): void {
  for (const figure of root.querySelectorAll<HTMLElement>("figure[data-picture=page_table]:not([data-drawn])")) {
    const source = figure.querySelector("script")?.textContent;
    if (!source) continue;
    const { inputs, expected, got } = JSON.parse(source) as Data;
    const parts = drawPageTable(inputs, expected, got);
    figure.dataset["drawn"] = "yes";
    if (parts.length) figure.append(...parts);
    else figure.hidden = true;
  }
}
