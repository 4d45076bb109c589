// Times come in UTC; shown in the reader's own zone and language.
export function localTimes(root: ParentNode): void {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  for (const element of root.querySelectorAll("time")) {
    const moment = new Date(element.dateTime);
    if (!Number.isNaN(moment.getTime())) element.textContent = format.format(moment);
  }
}
