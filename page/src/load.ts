/**
 * The document at an address, or null if there is none. XMLHttpRequest parses it without any function that Trusted Types
 * guards, and runs no script in it.
 */
export function load(address: string, [header, value]: readonly [string, string]): Promise<Document | null> {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest()
    request.open('GET', address.split('#')[0] ?? '')
    request.setRequestHeader(header, value)
    request.responseType = 'document'
    request.onloadend = () => resolve(request.status === 200 ? request.responseXML : null)
    request.send()
  })
}
