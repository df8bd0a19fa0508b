// For those who hear the page or use the keyboard: a name for the buttons beside each block of code,
// and a stop of the tab key at each block that has to be scrolled.
document$.subscribe(() => {
  const name = () =>
    document.querySelectorAll("nav.md-code__nav").forEach((nav, place) => {
      nav.setAttribute("aria-label", `Code ${place + 1}`);
    });
  const reach = () =>
    document.querySelectorAll("pre > code, .md-typeset__scrollwrap").forEach((block) => {
      if (block.scrollWidth > block.clientWidth) block.setAttribute("tabindex", "0");
    });
  name();
  reach();
  addEventListener("resize", reach);
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
});
