/** What a client would rather have, as Accept and Accept-Language write it: best first, with weights of 0 to 1000. */
export function readPreferences(
  header: string | undefined,
): { readonly value: string; readonly weight: number }[] {
  return (header ?? '')
    .split(',', preferencesMax)
    .map((part) => {
      const [value = '', ...parameters] = part.split(';').map((text) => text.trim().toLowerCase())
      const quality = parameters.find((text) => text.startsWith('q='))
      const [, whole = '1', fraction = ''] = /^q=([01])(?:\.(\d{0,3}))?$/.exec(quality ?? '') ?? []
      return { value, weight: Number.parseInt(whole + fraction.padEnd(3, '0'), 10) }
    })
    .filter(({ value, weight }) => value !== '' && weight > 0)
    .toSorted((a, b) => b.weight - a.weight)
}

/** Nobody writes more; what is longer is not read. */
const preferencesMax = 20

/** Browsers name text/html first. Programs name JSON, anything, or nothing: they get the ways to pay. */
export function prefersPage(accept: string | undefined): boolean {
  const preferences = readPreferences(accept)
  const page = preferences.find(({ value }) => value === 'text/html')
  const other = preferences.find(({ value }) => value === 'application/json' || value === '*/*')
  return page !== undefined && page.weight >= (other?.weight ?? 0)
}
