// Names the buttons beside each block of code, for those who hear the page.
document$.subscribe(() => {
  const name = () =>
    document.querySelectorAll("nav.md-code__nav").forEach((nav, place) => {
      nav.setAttribute("aria-label", `Code ${place + 1}`);
    });
  name();
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
});
