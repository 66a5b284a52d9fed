import { render } from 'preact';
import '../style/colours.css';
import '../style/base.css';
import '../style/controls.css';
import './style/shell.css';
import './style/forms.css';
import './style/data.css';
import './style/market.css';
import { applyTheme } from '../view/theme.tsx';
import { App } from './app.tsx';
import { takeMailToken } from './entry/mail-token.ts';

applyTheme();
// Before anything else, so that the token is in the history for no longer than necessary.
takeMailToken();
render(<App />, document.getElementById('page')!);
