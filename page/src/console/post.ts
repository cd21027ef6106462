/** The server's reason, as a sentence for the member. */
export class Refused extends Error {}

/** The session has ended. */
export class SignedOut extends Refused {}

const formToken = document.querySelector<HTMLMetaElement>('meta[name="form-token"]')?.content ?? ''

// biome-ignore lint/suspicious/noExplicitAny: the answers are the server's own.
export async function post(path: string, body: object): Promise<any> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, formToken }),
  })
  const answer = await response.json()
  if (!response.ok) throw answer.isSignedOut ? new SignedOut(answer.error) : new Refused(answer.error)
  return answer
}
