// Shows a figure's evidence beside it. Without scripts, or with a modifier key, its link leads there.
(() => {
  if (!('popover' in HTMLElement.prototype)) return;
  const card = document.createElement('aside');
  card.popover = 'auto';
  card.tabIndex = -1;
  card.setAttribute('aria-label', 'Evidence');
  document.body.append(card);
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const link = event.target.closest('a.value');
    const evidence = link && document.getElementById(decodeURIComponent(link.hash.slice(1)));
    if (!evidence) return;
    event.preventDefault();
    const copy = evidence.cloneNode(true);
    for (const part of [copy, ...copy.querySelectorAll('[id]')]) part.removeAttribute('id');
    copy.removeAttribute('aria-labelledby');
    for (const part of copy.querySelectorAll('.uses')) part.remove();
    const more = document.createElement('a');
    more.href = link.hash;
    more.textContent = 'All the evidence';
    card.replaceChildren(copy, more);
    for (const part of card.querySelectorAll('a')) part.addEventListener('click', () => card.hidePopover());
    card.style.maxHeight = '';
    card.showPopover();
    const at = link.getBoundingClientRect();
    const left = Math.max(12, Math.min(at.left, innerWidth - card.offsetWidth - 12));
    // Where neither side has room for all of it, the larger one has it scroll: what was clicked stays in sight.
    const [over, under] = [at.top - 20, innerHeight - at.bottom - 20];
    const below = card.offsetHeight <= under || under >= over;
    card.style.maxHeight = `min(70vh, ${Math.max(below ? under : over, 120)}px)`;
    const top = below ? at.bottom + 8 : Math.max(12, Math.min(at.top, innerHeight) - card.offsetHeight - 8);
    card.style.left = `${left}px`;
    card.style.top = `${top}px`;
    card.focus();
  });
})();
