"""Text of too little contrast on a page."""

from __future__ import annotations

FAINT = """(() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.body.querySelectorAll("*")) {
    const own = Array.from(element.childNodes)
      .some((n) => n.nodeType === 3 && n.textContent.trim() !== "");
    const inactive = element.getAttribute("aria-disabled") === "true";
    if (!own || inactive || !element.checkVisibility()) continue;
    const two = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort();
    const [low, high] = two[0] < two[1] ? two : two.reverse();
    if ((high + 0.05) / (low + 0.05) < 4.5) faint.push(element.outerHTML.slice(0, 80));
  }
  return faint;
})()"""
