"""The web interface: the main script and the components that pages share. The only home of streamlit."""
