// What every page has: local times, pictures, and a live view if a submission on it is still being judged.
import { enliven } from "./enliven";
import { ownFileButtons } from "./file";
import { siteKeys } from "./keys";
import { follow } from "./live";
import { keepFresh } from "./refresh";

enliven(document);
ownFileButtons();
siteKeys();
for (const holder of document.querySelectorAll<HTMLElement>("[data-result]")) follow(holder, enliven);
for (const part of document.querySelectorAll<HTMLElement>("[data-refresh]")) keepFresh(part);
