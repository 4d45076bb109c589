// What any piece of page needs that came from the server: local times, pictures, buttons that copy.
import { copyButtons } from "./copy";
import { drawPictures } from "./picture/draw";
import { localTimes } from "./times";

export function enliven(root: ParentNode): void {
  localTimes(root);
  drawPictures(root);
  copyButtons(root);
}
