/**
 * The URL of the checkout that a tool was given by id or URL; null if it is neither, or lies elsewhere. Tools request
 * only URLs below those in the settings. Otherwise a text could make a model pay a stranger's server, or a stranger's
 * page at another path of the same host.
 */
export function locateCheckout(urls: readonly string[], checkout: string): string | null {
  const [home = ''] = urls
  if (idForm.test(checkout)) return `${home}/api/v1/checkouts/${checkout}`
  if (!URL.canParse(checkout)) return null
  // Parsing has resolved `..`, also where it is written as %2e%2e or with backslashes.
  const { origin, pathname, username, password } = new URL(checkout)
  const isOurs = urls.some((url) => {
    const base = new URL(`${url}/`)
    return (
      base.origin === origin &&
      pathname.startsWith(base.pathname) &&
      pathForm.test(pathname.slice(base.pathname.length))
    )
  })
  return isOurs && `${username}${password}` === '' ? `${origin}${pathname}` : null
}

const idForm = /^ch_[0-9a-z]{28}$/
/** Plain folders and an id. A server may read an escaped slash (%2f) as one, which would lead out of the base again. */
const pathForm = /^([\w-]+\/)*ch_[0-9a-z]{28}$/
