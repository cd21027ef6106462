/** What the page says where strangers sign up. */
type Texts = {
  readonly title: string
  readonly heading: string
  readonly about: Readonly<Record<'approval' | 'open', string>>
  readonly test: string
  readonly name: string
  readonly storeName: string
  readonly wallet: string
  readonly walletHint: string
  readonly button: string
  readonly noPassword: string
  readonly hasPasskey: string
  readonly signIn: string
  readonly needsScript: string
}

const english: Texts = {
  title: 'Sign up',
  heading: 'Open a store',
  about: {
    approval:
      'You also get a store for real money. It takes payments as soon as we have looked at it and approved it.',
    open: 'You also get a store for real money. It takes payments as soon as you have proven that the wallet is yours.',
  },
  test: 'You get a test store that works at once, with test money.',
  name: 'Your name',
  storeName: 'Name of the store, as buyers see it',
  wallet: 'Address of the wallet that is paid',
  walletHint:
    'Copy it from your wallet. Payments go straight there, so check it twice. You can change it later.',
  button: 'Create a passkey and open the store',
  noPassword:
    'You need no password. This device makes a passkey, which you unlock with your fingerprint, face or PIN each time you sign in.',
  hasPasskey: 'If you have a passkey already, {signIn}.',
  signIn: 'sign in',
  needsScript: 'Passkeys need JavaScript. Allow it for this site.',
}

const spanish: Texts = {
  title: 'Registrarse',
  heading: 'Abra una tienda',
  about: {
    approval: 'También obtiene una tienda para dinero real. Cobra en cuanto la hayamos revisado y aprobado.',
    open: 'También obtiene una tienda para dinero real. Cobra en cuanto haya demostrado que la cartera es suya.',
  },
  test: 'Obtiene una tienda de pruebas que funciona al momento, con dinero de prueba.',
  name: 'Su nombre',
  storeName: 'Nombre de la tienda, como lo ven los compradores',
  wallet: 'Dirección de la cartera que cobra',
  walletHint:
    'Cópiela desde su cartera. Los pagos llegan directamente allí: compruébela dos veces. Puede cambiarla más tarde.',
  button: 'Crear una llave de acceso y abrir la tienda',
  noPassword:
    'No necesita contraseña. Este dispositivo crea una llave de acceso, que desbloquea con su huella, su cara o un PIN cada vez que inicia sesión.',
  hasPasskey: 'Si ya tiene una llave de acceso, {signIn}.',
  signIn: 'inicie sesión',
  needsScript: 'Las llaves de acceso necesitan JavaScript. Permítalo para este sitio.',
}

export const signUpTexts: Readonly<Record<string, Texts> & Record<'en', Texts>> = {
  en: english,
  es: spanish,
}
