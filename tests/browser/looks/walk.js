// Watches the path of the Tab key (keyboard.py): `begin` moves the focus to the start and returns the
// number of elements, `end` returns elements that were not reached and places where the order jumps back.
([what, known]) => {
  const STOPS = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  const isShown = node => node.checkVisibility({visibilityProperty: true});
  const isStop = node => isShown(node) && !node.matches(":disabled, [tabindex='-1']")
    // Of radio buttons with the same name, Tab only reaches the selected one, or else any one of them.
    && (node.type !== "radio" || node.checked || !document.querySelector(`[name="${node.name}"]:checked`));
  const short = node => node.cloneNode().outerHTML.slice(0, 160);

  // Another page has shown where the focus moves from this kind of place, unless a style moves the
  // elements.
  const sortOf = node => {
    const orders = [];
    for (let part = node; part; part = part.parentElement) orders.push(getComputedStyle(part).order);
    const around = node.parentElement.closest("form, table, nav, details, dialog, aside, header, footer, main, body");
    return [node.localName, node.type, around.localName, ...orders.filter(Number)].join(" ");
  };

  if (what === "begin") {
    const stops = [...document.querySelectorAll(STOPS)].filter(isStop);
    const sorts = [...new Set(stops.map(sortOf))];
    const isNew = sorts.some(sort => !known.includes(sort));
    if (isNew) {
      document.body.tabIndex = -1;
      document.body.focus();
      document.body.removeAttribute("tabindex");
      if (!window.walked) document.addEventListener("focusin", ({target}) => walked.push(target));
      window.walked = [];
    }
    return {sorts, count: isNew ? stops.length : 0};
  }

  if (what === "is over") return !document.activeElement || document.activeElement === document.body
    || walked.indexOf(document.activeElement) < walked.length - 1;

  const isFixed = node => {
    for (let part = node; part; part = part.parentElement) if (getComputedStyle(part).position === "fixed") return true;
    return false;
  };
  const problems = [];
  const [first] = walked;
  if (!first?.matches(".skip-link")) problems.push(`keyboard: the first is no link that skips to the content: ${first && short(first)}`);
  for (const node of document.querySelectorAll(STOPS)) {
    // An element that a script has replaced counts as the same.
    const isReached = each => each.isEqualNode(node) || (node.type === "radio" && each.type === "radio" && each.name === node.name);
    if (isStop(node) && !walked.some(isReached)) problems.push(`keyboard: Tab does not lead to ${short(node)}`);
  }
  let before = null;
  for (const node of walked) {
    // An element that a script has replaced has no position.
    if (!node.isConnected) continue;
    const {left, right, top, bottom} = node.getBoundingClientRect();
    // A narrow header has the menu at the end of its first line, and links below.
    const isHead = node.closest("header") && before?.node.closest("header");
    // On a phone, the navigation of the header is fixed at the lower edge, and the page follows.
    const bar = before?.node.closest(".account-menu, .site-nav");
    const leavesBar = bar && getComputedStyle(bar).position === "fixed";
    if (before && !isHead && !leavesBar && bottom <= before.top + 1 && left < before.right) {
      problems.push(`keyboard: Tab leads back up, from ${short(before.node)} to ${short(node)}`);
    }
    // A bar that is fixed at an edge of the window has no position in the page.
    if (!node.matches(".skip-link") && !isFixed(node)) before = {top, right, node};
    if (walked.indexOf(node) < walked.lastIndexOf(node)) break;
  }
  return problems;
}
