/**
 * The URL of a checkout that a tool was given as id or URL; null if it is neither, or is elsewhere. Tools go nowhere
 * but to the URLs in the settings: otherwise a text that a model has read could have it pay a stranger's server.
 */
export function locateCheckout(urls: readonly string[], checkout: string): string | null {
  const [home = ''] = urls
  if (idForm.test(checkout)) return `${home}/api/v1/checkouts/${checkout}`
  if (!URL.canParse(checkout)) return null
  const { origin, pathname, username } = new URL(checkout)
  const isOurs = urls.some((url) => new URL(url).origin === origin)
  return isOurs && username === '' && idForm.test(pathname.split('/').at(-1) ?? '')
    ? `${origin}${pathname}`
    : null
}

const idForm = /^ch_[0-9a-z]{28}$/
