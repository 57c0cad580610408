// Problems of this page for keyboard users: every element that can be clicked gets the focus in turn,
// as with the Tab key. Chromium follows the order of the document unless a tabindex is positive;
// keyboard.py checks this with real keys. The frame is the same on all pages, so known frames are
// skipped.
(known) => {
  const NATIVE = "a[href], area[href], button, input:not([type=hidden]), select, textarea, summary";
  const ROLES = ["button", "link", "tab", "menuitem", "option", "checkbox", "radio", "switch", "slider"];
  const USABLE = [
    NATIVE, "[onclick], [contenteditable=true], [tabindex]:not([tabindex='-1'])",
    ...ROLES.map(role => `[role=${role}]`),
  ].join();
  // Tab reaches one of these, and arrow keys move inside.
  const COMPOSITE = "[role=tablist], [role=menu], [role=listbox], [role=radiogroup], [role=tree], [role=grid]";
  const problems = new Set();
  const say = (node, words) => problems.add(`keyboard: ${words}: ${node.cloneNode().outerHTML.slice(0, 200)}`);
  const isShown = node => node.checkVisibility({visibilityProperty: true});

  const begun = document.activeElement;
  const details = [...document.querySelectorAll("details")].map(each => ({each, isOpen: each.open}));
  // Boxes that have to be opened to reach the element; a summary is outside of its own box.
  const boxesAround = node => details.filter(
    ({each}) => each.contains(node) && !each.querySelector(":scope > summary")?.contains(node));
  const openAround = node => { for (const {each} of boxesAround(node)) each.open = true; };

  const clipping = new Map();
  const isClipping = part => {
    if (!clipping.has(part)) {
      const {overflowX, overflowY, display} = getComputedStyle(part);
      clipping.set(part, display !== "inline" && (overflowX !== "visible" || overflowY !== "visible"));
    }
    return clipping.get(part);
  };

  // Number of sides of the outline that are cut off by ancestors with hidden overflow.
  const cutSides = (node, box, room) => {
    const [left, top, right, bottom] = [box.left - room, box.top - room, box.right + room, box.bottom + room];
    const cut = new Set();
    for (let part = node.parentElement; part && part !== document.documentElement; part = part.parentElement) {
      if (!isClipping(part)) continue;
      const edge = part.getBoundingClientRect();
      if (left < edge.left - 0.5) cut.add("left");
      if (right > edge.right + 0.5) cut.add("right");
      if (top < edge.top - 0.5) cut.add("top");
      if (bottom > edge.bottom + 0.5) cut.add("bottom");
    }
    return cut.size;
  };

  const isInView = node => {
    const boxes = [...node.getClientRects()].filter(({width, height}) => width > 1 && height > 1);
    const owner = node.labels?.[0];
    return boxes.some(({left, top, right, bottom}) => {
      const inset = Math.min(4, (right - left) / 3, (bottom - top) / 3);
      const points = [
        [(left + right) / 2, (top + bottom) / 2], [left + inset, top + inset], [right - inset, top + inset],
        [left + inset, bottom - inset], [right - inset, bottom - inset],
      ];
      return points.some(([x, y]) => {
        const hit = document.elementFromPoint(x, y);
        return hit && (node.contains(hit) || hit.contains(node) && hit.matches("label, summary") || owner?.contains(hit));
      });
    });
  };

  const isOutlined = node => {
    const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(node);
    return outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && !/, 0\)$/.test(outlineColor);
  };

  const checkFocus = node => {
    node.focus();
    if (document.activeElement !== node) return say(node, "does not take the focus");
    if (!isInView(node)) return say(node, "is out of view or covered when it has the focus");
    // The outline may be around the cell of the element.
    const marked = [node, node.closest("th, td, li")].find(part => part && isOutlined(part));
    if (!marked) return say(node, "does not show that it has the focus");
    const {outlineOffset, outlineWidth} = getComputedStyle(marked);
    const room = parseFloat(outlineOffset) + parseFloat(outlineWidth);
    if (cutSides(marked, marked.getClientRects()[0], room) > 2) say(node, "has an outline that is cut off");
  };

  const isNatural = node => node.tabIndex === 0 || Boolean(node.closest(COMPOSITE)?.querySelector("[tabindex='0']"));
  const frame = [innerWidth, ...document.querySelectorAll("body > header *, body > footer *")]
    .map(part => part.localName ?? part).join(" ");
  const isKnown = known.includes(frame);
  const pathOf = link => new URL(link.href.baseVal ?? link.href, location.href).pathname;
  const paths = new Set([...document.querySelectorAll("a[href]")].filter(link => link.tabIndex === 0).map(pathOf));
  // Links in a chart lead to lists to which links in its table or next to it lead.
  const isInPicture = node => node.matches("[aria-hidden=true] a, a[aria-hidden=true]") && node.closest("svg") && paths.has(pathOf(node));
  for (const node of document.querySelectorAll(USABLE)) {
    if (isInPicture(node)) continue;
    if (isKnown && node.closest("body > header, body > footer")) continue;
    // Swagger UI has additional buttons for the mouse that Tab does not reach.
    if (node.closest(".swagger-ui")) continue;
    if (node.disabled || node.matches(":disabled, [aria-disabled=true]")) continue;
    openAround(node);
    if (!isShown(node)) continue;
    if (node.tabIndex > 0) say(node, "has a place of its own in the order of focus");
    else if (!isNatural(node)) say(node, "cannot be reached by the Tab key");
    else checkFocus(node);
    for (const {each, isOpen} of details) if (each.open && !isOpen && !each.contains(node)) each.open = false;
  }
  // A pointer cursor indicates that a click has an effect.
  for (const node of document.body.querySelectorAll("*")) {
    if (node.closest(USABLE) || node.closest(".swagger-ui") || getComputedStyle(node).cursor !== "pointer") continue;
    const isUsable = node.closest("label")?.control || node.closest(":disabled");
    if (!isUsable && isShown(node)) say(node, "is for a mouse alone");
  }

  const [first] = document.querySelectorAll(USABLE);
  const target = first?.matches(".skip-link") && document.querySelector(first.getAttribute("href"));
  if (!target) say(first ?? document.body, "is not a link that skips to the content");

  for (const {each} of details) each.open = false;
  for (const {each, isOpen} of details) if (isOpen) each.open = true;
  if (begun && begun !== document.body) begun.focus({preventScroll: true});
  else document.activeElement.blur();
  scrollTo(0, 0);
  return {problems: [...problems], frame};
}
