// Times come in UTC; shown in the reader's own zone and language.
const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });

export function localTime(moment: Date): string {
  return format.format(moment);
}

export function localTimes(root: ParentNode): void {
  for (const element of root.querySelectorAll("time")) {
    const moment = new Date(element.dateTime);
    if (!Number.isNaN(moment.getTime())) element.textContent = localTime(moment);
  }
}
