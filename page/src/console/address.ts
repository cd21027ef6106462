/** Fills a field with the address of a wallet in this browser. */
import { Stop } from '../trouble.ts'
import { type Asker, textOf } from './place.ts'

export const addressAsker: Asker = {
  async EVM(provider) {
    const accounts = (await provider.request({ method: 'eth_requestAccounts' })) as readonly string[]
    return accounts[0] ?? stop()
  },
  async SOLANA({ features }) {
    const connected = await features['standard:connect']?.connect()
    return connected?.accounts[0]?.address ?? stop()
  },
  async use(address) {
    const field = document.querySelector<HTMLInputElement>(`input[name="${textOf('into')}"]`)
    if (field) {
      field.value = address
      field.focus()
    }
    return 'stays'
  },
}

function stop(): never {
  throw new Stop('failed')
}
